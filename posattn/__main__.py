"""`python -m posattn` is the command `posattn`."""

from posattn.cli.main import main

if __name__ == "__main__":
    main()

"""`python -m posattn` is the command `posattn`."""

from posattn.cli.main import run

if __name__ == "__main__":
    run()

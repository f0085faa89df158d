"""Other libraries' encoders: one file each, and the architectures in which they are measured."""

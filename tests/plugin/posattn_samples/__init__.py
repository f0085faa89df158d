"""Sample plug-ins for the tests of posattn."""

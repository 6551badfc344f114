"""One module per kind of hierarchy; each turns the domain of a QID into a ladder of levels."""

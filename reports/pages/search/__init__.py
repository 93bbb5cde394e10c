"""The data of the search field on every page."""

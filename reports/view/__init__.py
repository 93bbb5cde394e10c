"""What a page shows, as plain values: all rounding, units, order and wording live in this package.

Templates only loop over these values; charts only draw them. Times are UTC.
"""

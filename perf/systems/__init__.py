"""One module per database; `contract` says what each offers, `registry` finds them."""

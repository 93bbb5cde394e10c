"""The page that says what each number means."""

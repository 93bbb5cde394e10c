"""What a channel or an issue is sent, decided and written without a network."""

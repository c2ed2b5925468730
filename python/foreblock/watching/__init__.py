"""What an onlooker sees of networks, from their answers alone."""

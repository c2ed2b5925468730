"""`foreblock dev --like anvil`: a chain for people and programs that have used anvil so far."""

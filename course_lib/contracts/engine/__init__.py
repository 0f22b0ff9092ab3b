"""What every contract shares: a call, a judge, a clause, a diagnosis."""

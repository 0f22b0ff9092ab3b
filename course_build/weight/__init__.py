"""What the course weighs, by room, and the budgets that it has to keep (make weigh, make check)."""

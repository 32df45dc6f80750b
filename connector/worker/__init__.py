"""The loop that joins the rooms; the supervisor of worker processes; status and metrics."""

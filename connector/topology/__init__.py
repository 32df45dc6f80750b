"""Stream ids, stream sets, who follows whom; the planner that says what may be read up to when. Pure: no clock, no I/O."""

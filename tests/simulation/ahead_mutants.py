"""Rules of reading ahead: what was read before its turn is held in order, bounded, and delivered only where it fits.

In: nothing. Out: `AHEAD`. As in `mutants.py`, each rule with the change that breaks it, and what notices.
"""

from __future__ import annotations

from tests.simulation.mutation import Mutant
from tests.source import test_source_ahead as ahead

READ_AHEAD = "connector/source/ahead.py"
READING = "connector/source/reading.py"
WINDOWS = "connector/source/windows.py"

AHEAD = [
    Mutant(
        "what was read ahead is delivered up to the planner's limit",
        READ_AHEAD,
        " and self.upper <= read.limit",
        "",
        ahead.test_nothing_behind_the_end_of_a_stream_is_delivered_that_was_read_before_it_was_known,
    ),
    Mutant(
        "what was read ahead is delivered from just the place where the read begins",
        READ_AHEAD,
        "return begins == (self.state, self.streams, self.lower, None) and",
        "return bool(begins) and",
        ahead.test_a_window_is_only_for_the_read_that_it_was_read_for,
    ),
    Mutant(
        "pages of a window keep their order when it gets its turn",
        READING,
        "            if event is not window.came[0]:\n",
        "            if not window.came:\n",
        ahead.test_a_page_that_comes_while_a_window_gets_its_turn_waits_for_those_before_it,
    ),
    Mutant(
        "what was read ahead for slots that went away is dropped",
        READING,
        "        self.sweeping.forget_void()\n        self.ahead.clear()\n",
        "        self.sweeping.forget_void()\n",
        ahead.test_slots_that_went_away_leave_nothing_behind,
    ),
    Mutant(
        "what was read ahead makes room for what has its turn",
        READING,
        "            self.ahead.clear()\n        pauses",
        "            pass\n        pauses",
        ahead.test_who_waits_for_a_place_goes_before_what_was_read_ahead,
    ),
    Mutant(
        "a read is broken off only where it got on",
        READING,
        " or not active.batches",
        "",
        ahead.test_a_time_that_fills_many_pages_is_read_to_its_end,
    ),
    Mutant(
        "windows become narrower where they hold many pages",
        WINDOWS,
        "            if pages > PAGES:\n",
        "            if not pages:\n",
        ahead.test_widths_follow_what_windows_held,
    ),
    Mutant(
        "windows become wider than configured only where they hold half a page at most",
        WINDOWS,
        " and 2 * rows <= self.page_rows",
        "",
        ahead.test_windows_that_hold_half_a_page_become_wider_than_configured,
    ),
    Mutant(
        "windows become wider than configured only where no read has timed out",
        WINDOWS,
        "        self.by_rows = False\n",
        "",
        ahead.test_a_server_that_needs_long_for_a_few_rows_is_asked_for_no_more_than_configured,
    ),
]

"""Days of the Gregorian calendar as Java's legacy classes count them: Julian before 15 October 1582.

In: days since 1970-01-01. Out: the day that ``java.util.GregorianCalendar`` finds for the same year, month
and day.
"""

from __future__ import annotations

from typing import Final

_CUTOVER: Final = -141_427  # 1582-10-15
_EPOCH_AS_JULIAN_DAY: Final = 2_440_588


def gregorian_date(days: int) -> tuple[int, int, int]:
    """Year (astronomical: 0 is 1 BC), month and day of the Gregorian calendar, extended to all time.

    >>> gregorian_date(19884)
    (2024, 6, 10)
    """
    shifted = days + 719_468  # from 0000-03-01, so that the leap day ends the year
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    return _from_march(era * 400 + year_of_era, day_of_year)


def _from_march(year: int, day_of_year: int) -> tuple[int, int, int]:
    """The date of a day counted from 1 March."""
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year + (month <= 2), month, day


def java_date(days: int) -> tuple[int, int, int]:
    """Year, month and day as Java's legacy classes show them; the inverse of ``java_days``.

    >>> java_date(java_days(-719162))
    (1, 1, 1)
    """
    if days >= _CUTOVER:
        return gregorian_date(days)
    cycle, day_of_cycle = divmod(days + 719_470, 1461)
    year_of_cycle = min(day_of_cycle // 365, 3)
    return _from_march(cycle * 4 + year_of_cycle, day_of_cycle - 365 * year_of_cycle)


def java_days(days: int) -> int:
    """What the Java connector makes of a ``date``: right since the cutover, up to weeks off before.

    Where the earliest dates leave 32 bits, Kafka Connect's cast takes them round to the far future.

    >>> java_days(-141427), java_days(-141428), java_days(-(2**31))
    (-141427, -141418, 2147439564)
    """
    return (days_as_julian(days) + 2**31) % 2**32 - 2**31


def days_as_julian(days: int) -> int:
    """The days to the date of the same name in Java's legacy calendar, however many they are."""
    if days >= _CUTOVER:
        return days
    year, month, day = gregorian_date(days)
    past = (14 - month) // 12
    julian_year, julian_month = year + 4800 - past, month + 12 * past - 3
    julian_day = day + (153 * julian_month + 2) // 5 + 365 * julian_year + julian_year // 4 - 32_083
    return julian_day - _EPOCH_AS_JULIAN_DAY


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970 to a date as Java's legacy classes read it; the inverse of ``java_date``. Any day is taken: the
    32nd is the 1st of the next month.

    >>> day_number(2024, 6, 10), java_date(day_number(1500, 2, 29))
    (19884, (1500, 2, 29))
    """
    past = (14 - month) // 12
    shifted_year, shifted_month = year + 4800 - past, month + 12 * past - 3
    whole = day + (153 * shifted_month + 2) // 5 + 365 * shifted_year + shifted_year // 4
    gregorian = whole - shifted_year // 100 + shifted_year // 400 - 32_045 - _EPOCH_AS_JULIAN_DAY
    return gregorian if gregorian >= _CUTOVER else whole - 32_083 - _EPOCH_AS_JULIAN_DAY

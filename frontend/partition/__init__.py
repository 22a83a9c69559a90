"""Programs that are not wholly native: which parts are compiled, which run in eager, and how they run together."""

"""Files of dumps: CSV and archives, with limits on what is read."""

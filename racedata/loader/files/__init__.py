"""Files of dumps: CSV and archives."""

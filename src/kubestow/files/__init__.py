"""Files of users: reading them within a limit, writing those that are kept.

reading    content up to a limit, packed or not
keeping    files that only their owner can read, and that replace no other
"""

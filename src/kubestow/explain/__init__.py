"""Why a pod went where it went, and why not elsewhere.

Reads recorded decisions and turns them into text and JSON; decides nothing itself.
"""

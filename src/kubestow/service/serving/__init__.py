"""The HTTPS port of the process: health, metrics, its configuration (spec 09 §7).

certificates     the server certificate, and the authorities of client certificates
authentication   the user: by certificate, a proxy's headers or a token; else anonymous
authorization    always-allowed paths, else the API server is asked
health           checks by name, and the text of their results
pages            /configz, /flagz, /statusz
reviews          questions to the API server: how long answers are kept, how many are under way
trust            which client certificates and proxies are trusted
application      paths to answers; 401, 403, 429
page_site        the page, for the same users
server           the socket, and an end that waits for open requests
serving          builds all of these, and registers the checks of /healthz
"""

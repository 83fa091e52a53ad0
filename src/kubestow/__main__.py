"""`python -m kubestow`: the `kubestow` command, for where scripts are not on the path."""

from kubestow.service.start import main

if __name__ == "__main__":
    main()

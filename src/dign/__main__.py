from dign.cli import main

main()

"""What the runs say: grouped, tested for significance, compared with the paper."""

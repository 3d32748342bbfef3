module example.org/apart

go 1.26.0

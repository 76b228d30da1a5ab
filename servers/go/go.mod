module go-server

go 1.24

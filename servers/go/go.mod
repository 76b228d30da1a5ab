module go-server

go 1.21

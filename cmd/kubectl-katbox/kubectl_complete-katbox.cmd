@kubectl-katbox.exe __complete %*

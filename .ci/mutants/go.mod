module github.com/katbox/katbox/ci/mutants

go 1.26.0

// RUN: not dlcb-opt %s.none.mlir 2>&1 | filecheck %s

// CHECK: dlcb-opt: error: {{.*}}.none.mlir: No such file or directory

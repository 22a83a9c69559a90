// RUN: not dlcb-opt %s --split-input-file 2>&1 | filecheck %s

builtin.module {}

// -----

func.func @f() -> i32 {
  func.return
}

// CHECK: split_input.mlir:8:3: error: func.return

// RUN: not dlcb-opt %s -p 'dlcb-specialize{sizes="y_0=16"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not dlcb-opt %s -p 'dlcb-specialize{sizes="x_0=-1"}' 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not dlcb-opt %s -p 'dlcb-specialize{sizes="x_0"}' 2>&1 | filecheck %s --check-prefix=FORM
// RUN: not dlcb-opt %s -p 'dlcb-specialize{sizes="x_0=2","x_0=3"}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not dlcb-opt %s -p 'dlcb-collect,dlcb-solve,dlcb-specialize{sizes="x_0=2"}' 2>&1 | filecheck %s --check-prefix=LATE
// RUN: not dlcb-opt %s -p 'dlcb-specialize{sizes="x_1=9"},dlcb-collect,dlcb-solve' 2>&1 | filecheck %s --check-prefix=IMPOSSIBLE

// UNKNOWN: dlcb-opt: error: dlcb-specialize: no input gives 'y_0'; the symbols that inputs give are: x_0 (x.shape[0]), x_1 (x.shape[1])
// NEGATIVE: dlcb-opt: error: dlcb-specialize: x_0 (x.shape[0]) can't be -1
// FORM: dlcb-opt: error: dlcb-specialize: expected 'symbol=number', got 'x_0'
// TWICE: dlcb-opt: error: dlcb-specialize: 'x_0' is to be 2 and 3
// LATE: dlcb-opt: error: dlcb-specialize: the sizes are solved; specialize before the stage 'solve'
// IMPOSSIBLE: specialized to this size: x_1 == 9 can not hold: it says 8 == 9, because of matmul: model.py:7: inner sizes differ; weight 'w'
dlcb.graph.func @main(%x: tensor<[x_0, x_1], f32> input "x", %w: tensor<[8, 4], f32> weight "w") {
  %r = dlcb.graph.matmul %x, %w : (tensor<[x_0, x_1], f32>, tensor<[8, 4], f32>) -> tensor<[x_0, 4], f32> loc("model.py":7:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0, 4], f32>
}

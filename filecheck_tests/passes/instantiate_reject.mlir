// RUN: not dlcb-opt %s -p 'dlcb-instantiate{ranks="z=3"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not dlcb-opt %s -p 'dlcb-instantiate' 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not dlcb-opt %s -p 'dlcb-instantiate{ranks="x=-1"}' 2>&1 | filecheck %s --check-prefix=FORM
// RUN: not dlcb-opt %s -p 'dlcb-instantiate{ranks="x=1","x=2"}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not dlcb-opt %s -p 'dlcb-instantiate{ranks="x=2"}' 2>&1 | filecheck %s --check-prefix=PERMUTE
// RUN: not dlcb-opt %s -p 'dlcb-instantiate{ranks="x=0"}' 2>&1 | filecheck %s --check-prefix=AXIS
// RUN: not dlcb-opt %s -p 'dlcb-instantiate{ranks="x=1"}' 2>&1 | filecheck %s --check-prefix=SAME
// RUN: not dlcb-opt %s --stop-after solve 2>&1 | filecheck %s --check-prefix=STAGE

// UNKNOWN: dlcb-opt: error: dlcb-instantiate: 'z' is no argument of any rank; those of @main are: x
// MISSING: dlcb-opt: error: dlcb-instantiate: the argument 'x' is of any rank, and has been given none
// FORM: dlcb-opt: error: dlcb-instantiate: expected 'argument=rank' with a rank of at least 0, got 'x=-1'
// TWICE: dlcb-opt: error: dlcb-instantiate: 'x' is to be of rank 1 and 2
// PERMUTE: dlcb-opt: error: dlcb-instantiate: permute: model.py:5:
// AXIS: dlcb-opt: error: dlcb-instantiate: sum: model.py:4: a tensor of rank 0 has no axis 0
// SAME: dlcb-opt: error: dlcb-instantiate: sum: model.py:4: of a tensor of rank 1, two of the axes are the same
// STAGE: dlcb-opt: error: @main: the argument 'x' is a tensor of any rank; give it one first, as in dlcb-instantiate{ranks="x=2"}
dlcb.graph.func @main(%x: tensor<*, f32> input "x") {
  %s = dlcb.graph.sum %x {axes = [0, -1]} : (tensor<*, f32>) -> tensor<*, f32> loc("model.py":4:0)
  %p = dlcb.graph.permute %x {order = [2, 0, 1]} : (tensor<*, f32>) -> tensor<*, f32> loc("model.py":5:0)
  dlcb.graph.return %s, %p : !dlcb.graph.tensor<*, f32>, !dlcb.graph.tensor<*, f32>
}

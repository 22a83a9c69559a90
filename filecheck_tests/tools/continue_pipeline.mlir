// RUN: dlcb-opt %s --stop-after collect --print-ir-after all 2>&1 | filecheck %s
// RUN: dlcb-opt %s --stop-after generalize --print-ir-after all 2>&1 | filecheck %s --check-prefix DONE

builtin.module attributes {dlcb.stage = "generalize"} {
  dlcb.graph.func @main(%x: tensor<[x_0, 8], f32> input "x") {
    %y = dlcb.graph.relu %x : (tensor<[x_0, 8], f32>) -> tensor<[x_0, 8], f32>
    dlcb.graph.return %y : !dlcb.graph.tensor<[x_0, 8], f32>
  }
}

// CHECK-NOT: IR after generalize
// CHECK: IR after collect
// CHECK: builtin.module attributes {dlcb.stage = "collect"}

// DONE-NOT: IR after
// DONE: builtin.module attributes {dlcb.stage = "generalize"}

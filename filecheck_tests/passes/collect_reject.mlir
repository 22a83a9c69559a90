// RUN: not dlcb-opt %s -p dlcb-collect 2>&1 | filecheck %s

// CHECK: reshape: model.py:3: nothing defines the size 'm': no input has it and no op infers it
dlcb.graph.func @unknown_size(%x: tensor<[x_0, 8], f32> input "x") {
  %r = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[m, 2]>} : (tensor<[x_0, 8], f32>) -> tensor<[m, 2], f32> loc("model.py":3:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[m, 2], f32>
}

// RUN: dlcb-opt %s -p 'dlcb-instantiate{ranks="x=3","y=2"}' | filecheck %s --check-prefix=THREE
// RUN: dlcb-opt %s -p 'dlcb-instantiate{ranks="x=1","y=1"}' --stop-after solve | filecheck %s --check-prefix=ONE

// Each rank is a program of its own: sizes are symbols, axes count from the start, results have the sizes that ops infer.
// THREE: dlcb.shape.symbol "x_2" size "x" 2
// THREE: dlcb.shape.define "d1" =
// THREE: dlcb.graph.func @main(%x: tensor<[x_0, x_1, x_2], f32> input "x",
// THREE-NEXT: %y: tensor<[y_0, y_1], f32> input "y"
// THREE: dlcb.graph.add {{.*}} -> tensor<[x_0, d0, d1], f32>
// THREE: dlcb.graph.softmax {{.*}} {axis = 2}
// THREE: dlcb.graph.layer_norm {{.*}} {axes = 1
// THREE: dlcb.graph.sum {{.*}} {axes = [2]} : {{.*}} -> tensor<[x_0, d0], f32>
// ONE: dlcb.shape.require broadcastable %x0, %y0 "add: model.py:3: sizes that do not broadcast"
// ONE: dlcb.graph.softmax {{.*}} {axis = 0}
// ONE: dlcb.graph.sum {{.*}} {axes = [0]} : {{.*}} -> tensor<[], f32>
dlcb.graph.func @main(%x: tensor<*, f32> input "x", %y: tensor<*, f32> input "y") {
  %a = dlcb.graph.add %x, %y : (tensor<*, f32>, tensor<*, f32>) -> tensor<*, f32> loc("model.py":3:0)
  %s = dlcb.graph.softmax %a {axis = -1} : (tensor<*, f32>) -> tensor<*, f32> loc("model.py":4:0)
  %n = dlcb.graph.layer_norm %s {axes = 1, eps = 1.0e-05 : f32} : (tensor<*, f32>) -> tensor<*, f32> loc("model.py":5:0)
  %m = dlcb.graph.sum %n {axes = [-1]} : (tensor<*, f32>) -> tensor<*, f32> loc("model.py":6:0)
  dlcb.graph.return %m : !dlcb.graph.tensor<*, f32>
}

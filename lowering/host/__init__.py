"""The host program of a function: `facts` names sizes and checks inputs, `memory` places values, `choice` chooses
variants."""

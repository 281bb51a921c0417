/// @file The algorithms of update_kernels.h, one element each.
#pragma once

#include "kernels/reference/adagrad-inl.h"
#include "kernels/reference/adam-inl.h"
#include "kernels/reference/lion-inl.h"
#include "kernels/reference/sgd-inl.h"

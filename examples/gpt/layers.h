/// @file layers: what each layer of a transformer computes, forward and backward, on plain arrays.
/// Knows nothing of the model that they form, of ranks or of libzero.
#ifndef GPT_LAYERS_H
#define GPT_LAYERS_H

#include <stdint.h>

#include "real.h"

/// Arrays are row-major; a row is a token. `rows` counts tokens, `width` the elements of each.
/// Backward functions take the gradient of their output. Those of parameters are overwritten when
/// `add` is 0, and added to otherwise; a gradient that is NULL is not wanted.

/// out[t] = token_table[ids[t]] + place_table[place of t]: rows of `length` tokens, the first of
/// them at place `first`.
void embedding_forward(const int32_t *ids, const real *token_table, const real *place_table, int64_t rows, int64_t length, int64_t first,
                       int64_t width, real *out);
/// The place gradient has `places` rows. Tables of gradients are added to where add says so.
void embedding_backward(const int32_t *ids, const real *out_grad, int64_t rows, int64_t length, int64_t width, int64_t tokens,
                        int64_t places, real *token_grad, int add_token, real *place_grad, int add_place);

/// out = (in - mean) / sqrt(variance + 1e-5) * weight + bias, by row; keeps both statistics.
void norm_forward(const real *in, const real *weight, const real *bias, int64_t rows, int64_t width, real *out, real *mean, real *scale);
/// Adds to in_grad.
void norm_backward(const real *in, const real *mean, const real *scale, const real *weight, const real *out_grad, int64_t rows,
                   int64_t width, real *in_grad, real *weight_grad, int add_weight, real *bias_grad, int add_bias);

/// out = in weight + bias + residual; weight has inputs x outputs elements, residual may be NULL.
void linear_forward(const real *in, const real *weight, const real *bias, const real *residual, int64_t rows, int64_t inputs,
                    int64_t outputs, real *out);
/// Overwrites in_grad.
void linear_backward(const real *in, const real *weight, const real *out_grad, int64_t rows, int64_t inputs, int64_t outputs,
                     real *in_grad, real *weight_grad, int add_weight, real *bias_grad, int add_bias);

/// logits = in table', the head: a product with each row of the token table.
void head_logits(const real *in, const real *table, int64_t rows, int64_t width, int64_t vocabulary, real *logits);
/// Overwrites in_grad.
void head_backward(const real *table, const real *logits_grad, int64_t rows, int64_t width, int64_t vocabulary, real *in_grad);
void head_table_backward(const real *in, const real *logits_grad, int64_t rows, int64_t width, int64_t vocabulary, real *table_grad,
                         int add_table);

/// Causal attention of `heads` heads. A sequence has room for `length` tokens; of each, the queries
/// [first, first + count) look at all tokens up to themselves. Of the token at place t of sequence s
/// qkv has query, key and value one after another at row s * length + t, and `probabilities` of
/// sequence, head and query `length` elements.
struct attention {
  int64_t sequences, length, first, count, heads, width;
};
/// Queries that are multiplied with keys at once: keys in the future of all of them are left out.
enum { kQueries = 64 };
void attention_forward(const struct attention *shape, const real *qkv, real *probabilities, real *out);
/// All queries (first 0, count = length). `scratch` has kQueries x length elements.
void attention_backward(const struct attention *shape, const real *qkv, const real *probabilities, const real *out_grad, real *scratch,
                        real *qkv_grad);

/// out = x / (1 + e^(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): GELU in the form with tanh.
void gelu_forward(const real *in, int64_t count, real *out);
/// in_grad may be out_grad.
void gelu_backward(const real *in, const real *out_grad, int64_t count, real *in_grad);

/// Sum over rows of -ln(softmax(logits)[target]).
double loss_forward(const real *logits, const int32_t *targets, int64_t rows, int64_t vocabulary);
/// The same, and logits become gradients of `factor` times that sum.
double loss_backward(real *logits, const int32_t *targets, int64_t rows, int64_t vocabulary, real factor);

#endif

/* @file The texts that `zero ckpt` prints: one that grows between two calls is printed whole, and an error gives its exit code. */
#include "tools/zero_ckpt.c"

static int64_t calls;

/* Grows with the first three calls. */
static int32_t make_growing(const void *object, const struct arguments *given, char *out, int64_t out_nbytes, int64_t *out_needed) {
  (void)object;
  (void)given;
  const int64_t length = 10 * (calls < 3 ? ++calls : calls);
  for (int64_t i = 0; i < out_nbytes; ++i) out[i] = i + 1 < out_nbytes && i < length ? 'x' : '\0';
  if (out_needed != NULL) *out_needed = length + 1;
  return ZERO_OK;
}

static int check(bool good, const char *text) {
  if (!good) fprintf(stderr, "FAILED %s\n", text);
  return good ? 0 : 1;
}

int main(void) {
  const struct arguments given = {{NULL, NULL}, 0, 0, false, false};
  int code = -1;
  char *text = text_of((struct text_source){make_growing, NULL}, &given, &code);
  int failed = check(text != NULL && strlen(text) == 30 && code == kGood, "a text that grows is cut");
  free(text);
  text = text_of((struct text_source){make_list, NULL}, &given, &code);
  failed += check(text == NULL && code == kUsage, "an invalid argument has another exit code than 2");
  text = text_of((struct text_source){make_list, "/nowhere"}, &given, &code);
  failed += check(text == NULL && code == kNothing, "a missing folder has another exit code than 3");
  return failed;
}

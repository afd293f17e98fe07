// What exported libraries of every target check about their arguments. In front of it stands
// pr_params, the table of what the kernel was compiled for: PR_NUM_PARAMS rows, and as many again for
// each further combination of sizes that a net was compiled for.

typedef uint64_t pr_address;
typedef struct {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} pr_tensor;  // DLTensor

enum { PR_OK = 0, PR_ARGUMENT = 1 };

static __thread char pr_message[512];

__attribute__((format(printf, 2, 3))) static int pr_fail(int code, const char* format, ...) {
  va_list words;
  va_start(words, format);
  vsnprintf(pr_message, sizeof pr_message, format, words);
  va_end(words);
  return code;
}

static int64_t pr_size(const pr_param* p) {
  int64_t bytes = p->bits / 8;
  for (int d = 0; d < p->ndim; ++d) bytes *= p->shape[d];
  return bytes;
}

static int pr_check_shape(const pr_tensor* t, const pr_param* p, int i) {
  if (t->ndim != p->ndim)
    return pr_fail(PR_ARGUMENT, "argument %d (%s) has %d dimensions, not %d", i, p->name,
                   (int)t->ndim, p->ndim);
  if (t->shape == NULL && p->ndim > 0)
    return pr_fail(PR_ARGUMENT, "argument %d (%s) has no shape", i, p->name);
  int64_t dense = 1;
  for (int d = p->ndim - 1; d >= 0; --d) {
    if (t->shape[d] != p->shape[d])
      return pr_fail(PR_ARGUMENT, "argument %d (%s) has extent %lld in dimension %d, not %lld", i,
                     p->name, (long long)t->shape[d], d, (long long)p->shape[d]);
    // Where there is one index only, any stride will do.
    if (t->strides != NULL && p->shape[d] != 1 && t->strides[d] != dense)
      return pr_fail(PR_ARGUMENT, "argument %d (%s) is not dense and row-major", i, p->name);
    dense *= p->shape[d];
  }
  return PR_OK;
}

static int pr_check_type(const pr_tensor* t, const pr_param* p, int i) {
  // Older producers give bool as an unsigned byte.
  const int is_bool = p->code == 6 && t->code == 1;
  if ((t->code != p->code && !is_bool) || t->bits != p->bits || t->lanes != 1)
    return pr_fail(PR_ARGUMENT,
                   "argument %d (%s) has type code %d with %d bits x %d, not %d with %d", i,
                   p->name, t->code, t->bits, t->lanes, p->code, p->bits);
  return PR_OK;
}

static int pr_check_address(pr_address at, int alignment, const pr_param* p, int i) {
  if (at == 0) return pr_fail(PR_ARGUMENT, "argument %d (%s) is NULL", i, p->name);
  if (at % (pr_address)alignment != 0)
    return pr_fail(PR_ARGUMENT, "argument %d (%s) is not aligned to %d bytes", i, p->name,
                   alignment);
  return PR_OK;
}

static pr_address pr_address_of(const pr_tensor* t) {
  return t->data == NULL ? 0 : (pr_address)(uintptr_t)t->data + t->byte_offset;
}

// Kernels read their inputs while they write. An address of 0 is no argument of this call.
static int pr_check_overlap(const pr_param* params, const pr_address* at) {
  for (int o = 0; o < PR_NUM_PARAMS; ++o) {
    for (int i = 0; params[o].is_output && i < PR_NUM_PARAMS; ++i) {
      if (i == o || at[o] == 0 || at[i] == 0) continue;
      if (at[i] >= at[o] + (pr_address)pr_size(&params[o])) continue;
      if (at[o] >= at[i] + (pr_address)pr_size(&params[i])) continue;
      return pr_fail(PR_ARGUMENT, "argument %d (%s) overlaps argument %d (%s)",
                     params[o].number, params[o].name, params[i].number, params[i].name);
    }
  }
  return PR_OK;
}

// Of a library of a net that was compiled for several sizes: which of them a call is for. In front of
// it stand the table pr_sizes of the combinations, the names pr_dims, and pr_listed, what there is.

static int pr_find(const int64_t* sizes) {
  for (int s = 0; s < PR_NUM_SIZES; ++s) {
    if (memcmp(pr_sizes[s], sizes, sizeof pr_sizes[s]) == 0) return s;
  }
  char asked[200] = "";
  size_t length = 0;
  for (int d = 0; d < PR_NUM_DIMS && length < sizeof asked; ++d)
    length += (size_t)snprintf(asked + length, sizeof asked - length, "%s%s=%lld",
                               d == 0 ? "" : ",", pr_dims[d], (long long)sizes[d]);
  pr_fail(PRUNERC_ERROR_SIZES, "it was not compiled for %s, but for %s", asked, pr_listed);
  return -1;
}

static int pr_has_shape(const pr_tensor* t, const pr_param* p) {
  if (t == NULL || t->ndim != p->ndim || (t->shape == NULL && p->ndim > 0)) return 0;
  for (int d = 0; d < p->ndim; ++d) {
    if (t->shape[d] != p->shape[d]) return 0;
  }
  return 1;
}

// By the tensors' shapes.
static int pr_find_tensors(const pr_tensor* const* tensors, int32_t num_tensors) {
  // What else is wrong is said where it is looked at.
  if (tensors == NULL || num_tensors != PR_NUM_ARGUMENTS) return 0;
  for (int s = 0; s < PR_NUM_SIZES; ++s) {
    int fits = 1;
    for (int i = 0; i < PR_NUM_PARAMS; ++i) fits &= pr_has_shape(tensors[i], &pr_params_of(s)[i]);
    if (fits) return s;
  }
  for (int i = 0; i < PR_NUM_PARAMS; ++i) {
    if (tensors[i] == NULL) return 0;
  }
  pr_fail(PRUNERC_ERROR_SIZES, "it was not compiled for these shapes, but for %s", pr_listed);
  return -1;
}

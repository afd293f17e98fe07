/* Calls the network from two threads at once and compares what each gets with what prunerc gave.
 * usage: call IMAGE.npy WANTED.npy */
#include "small_cnn.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

enum { kPixels = 28 * 28, kClasses = 10, kThreads = 2, kCalls = 50 };
static float image[kPixels], wanted[kClasses];

/* The numbers are the end of an .npy file. */
static int read_npy(const char* path, float* to, long count) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return 0;
  const long bytes = count * (long)sizeof(float);
  const int is_read =
      fseek(file, -bytes, SEEK_END) == 0 && fread(to, sizeof(float), (size_t)count, file) == (size_t)count;
  fclose(file);
  return is_read;
}

/* Returns NULL, or what went wrong. */
static void* classify(void* unused) {
  (void)unused;
  for (int call = 0; call < kCalls; ++call) {
    float probabilities[kClasses] = {0};
    if (net_small_cnn(image, probabilities) != 0) return (void*)net_small_cnn_error();
    for (int i = 0; i < kClasses; ++i) {
      if (!(fabsf(probabilities[i] - wanted[i]) <= 1e-5f)) return (void*)"other probabilities than wanted";
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3 || !read_npy(argv[1], image, kPixels) || !read_npy(argv[2], wanted, kClasses)) {
    fprintf(stderr, "usage: call IMAGE.npy WANTED.npy\n");
    return 2;
  }
  /* The weights lie in small_cnn.weights: loaded here, their absence is noticed before the first image. */
  if (net_small_cnn_load_weights(NULL) != 0) {
    fprintf(stderr, "%s\n", net_small_cnn_error());
    return 1;
  }
  pthread_t threads[kThreads];
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, classify, NULL) != 0) return 1;
  }
  for (int i = 0; i < kThreads; ++i) {
    void* said = NULL;
    pthread_join(threads[i], &said);
    if (said == NULL) continue;
    fprintf(stderr, "thread %d: %s\n", i, (const char*)said);
    wrong = 1;
  }
  if (!wrong) printf("right, %d calls in each of %d threads\n", kCalls, kThreads);
  return wrong;
}

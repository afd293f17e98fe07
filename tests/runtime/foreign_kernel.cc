// A kernel that calls what no kernel may call; alone in its object, which cannot be linked for that
// reason.
#include "runtime/kernel.h"

extern "C" {

int getpid();

int32_t calls_the_system_library(void* const*, void*, const PrunercLaunch*) { return getpid() < 0; }

}  // extern "C"

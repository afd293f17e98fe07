"""Header folders of libraries that the compiler does not search by itself.

prunerc_library and its kin give these to a target that names the library in its own deps, and only to that one: a
header of LLVM or Eigen is out of reach for everybody else. No header is globbed, since a glob of some thousand files
would be an input of each action.
"""

SYSTEM_INCLUDES = {
    "//third_party:eigen": ["/usr/include/eigen3"],
    "//third_party:llvm": ["/usr/lib/llvm-19/include"],
    "//third_party:llvm_support": ["/usr/lib/llvm-19/include"],
}

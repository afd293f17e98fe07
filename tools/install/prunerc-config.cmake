# find_package(prunerc): the compiler as prunerc::prunerc, and prunerc_add_kernel().
include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(PRUNERC_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(PRUNERC_EXECUTABLE "${PRUNERC_PREFIX}/bin/prunerc")
set(PRUNERC_INCLUDE_DIR "${PRUNERC_PREFIX}/include")
if(NOT TARGET prunerc::prunerc)
  add_executable(prunerc::prunerc IMPORTED)
  set_target_properties(prunerc::prunerc PROPERTIES IMPORTED_LOCATION "${PRUNERC_EXECUTABLE}")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/prunerc_add_kernel.cmake")

# prunerc_add_kernel(NAME FILE.prn [STATIC | SHARED] [OP name] [DEFINES M=64 N=64 ...] [RECORDS file.jsonl]
#                    [REQUIRE_TUNED] [TARGET cpu:name] [THREADS n] [SYMBOL name] [DEPENDS file ...])
#
# Adds a library NAME with the operator's function, and <NAME.h> for those who link it. Never measures or tunes: the
# schedule is the best of RECORDS (`prunerc db export`), else the heuristic one; REQUIRE_TUNED makes the latter an error.
# Made anew when FILE, RECORDS, DEPENDS (what FILE imports) or prunerc change.
#   OP       the operator, if the file has several
#   DEFINES  values of its parameters
#   TARGET   as `prunerc compile --target`: cpu (default) is the machine that builds, cpu:haswell makes the same everywhere
#   THREADS  that the kernel is made for; default: all of the machine that builds
#   SYMBOL   name of the function instead of op_<operator>
function(prunerc_add_kernel name file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "STATIC;SHARED;REQUIRE_TUNED" "OP;RECORDS;TARGET;THREADS;SYMBOL" "DEFINES;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "prunerc_add_kernel(${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "prunerc_add_kernel(${name}): ${arg_KEYWORDS_MISSING_VALUES} needs a value")
  endif()
  if(arg_STATIC AND arg_SHARED)
    message(FATAL_ERROR "prunerc_add_kernel(${name}): STATIC or SHARED, not both")
  endif()
  if(arg_REQUIRE_TUNED AND NOT arg_RECORDS)
    message(FATAL_ERROR "prunerc_add_kernel(${name}): REQUIRE_TUNED needs RECORDS")
  endif()
  # The linker's driver; the object needs neither language's runtime.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(language CXX)
  if(C IN_LIST languages)
    set(language C)
  endif()
  set(kind STATIC)
  if(arg_SHARED)
    set(kind SHARED)
  endif()

  get_filename_component(source "${file}" ABSOLUTE)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.prunerc")
  set(object "${folder}/${name}.o")
  set(header "${folder}/${name}.h")
  # Not the user's database: what is built follows from files of the project.
  set(records ":memory:")
  if(arg_RECORDS)
    get_filename_component(records "${arg_RECORDS}" ABSOLUTE)
    list(APPEND arg_DEPENDS "${records}")
  endif()
  set(options --db "${records}")
  if(arg_OP)
    list(APPEND options --op "${arg_OP}")
  endif()
  if(arg_TARGET)
    list(APPEND options --target "${arg_TARGET}")
  endif()
  if(arg_THREADS)
    list(APPEND options --threads "${arg_THREADS}")
  endif()
  if(arg_SYMBOL)
    list(APPEND options --symbol "${arg_SYMBOL}")
  endif()
  if(arg_REQUIRE_TUNED)
    list(APPEND options --require-tuned)
  endif()
  foreach(define IN LISTS arg_DEFINES)
    list(APPEND options -D "${define}")
  endforeach()

  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${object}" "${header}"
    COMMAND prunerc::prunerc compile "${source}" ${options} -o "${object}" -o "${header}"
    DEPENDS "${source}" ${arg_DEPENDS} prunerc::prunerc
    COMMENT "Compiling kernel ${name}"
    VERBATIM)
  add_library(${name} ${kind} "${object}" "${header}")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE ${language} POSITION_INDEPENDENT_CODE ON PUBLIC_HEADER "${header}")
  target_include_directories(${name} INTERFACE "$<BUILD_INTERFACE:${folder}>" "$<INSTALL_INTERFACE:include>")
  target_link_libraries(${name} PUBLIC Threads::Threads)
endfunction()

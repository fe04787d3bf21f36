# A fake of CANN's module of the same name. It records every call, and fails if a file that a call names
# does not exist.
set(ASCEND_AUTOGEN_PATH ${CMAKE_BINARY_DIR}/autogen)
file(WRITE ${ASCEND_AUTOGEN_PATH}/op_proto.cc "")
file(WRITE ${CMAKE_BINARY_DIR}/calls.txt "")

function(record name)
  foreach(word ${ARGN})
    if(IS_ABSOLUTE ${word} AND NOT EXISTS ${word})
      message(FATAL_ERROR "${name} names ${word}, which does not exist")
    endif()
  endforeach()
  string(REPLACE ";" " " line "${name} ${ARGN}")
  string(REPLACE "${CMAKE_SOURCE_DIR}/" "" line "${line}")
  string(REPLACE "${CMAKE_BINARY_DIR}/" "build/" line "${line}")
  file(APPEND ${CMAKE_BINARY_DIR}/calls.txt "${line}\n")
endfunction()

foreach(name npu_op_package npu_op_library npu_op_package_add npu_op_kernel_options npu_op_kernel_sources
        npu_op_kernel_library)
  cmake_language(EVAL CODE "function(${name})\n  record(${name} \${ARGN})\nendfunction()")
endforeach()

# CANN's generator writes the sources of the aclnn interface; this fake writes an empty one.
function(npu_op_code_gen)
  record(npu_op_code_gen ${ARGN})
  file(WRITE ${ASCEND_AUTOGEN_PATH}/aclnn_avsg.cpp "")
endfunction()

# ccache and a fast linker where present. Whoever sets CMAKE_CXX_COMPILER_LAUNCHER or RHEA_LINKER keeps that choice.
find_program(RHEA_CCACHE ccache)
if(RHEA_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these ccache keeps nothing that was compiled with a precompiled header. GCC never writes one twice with the same
  # bytes, so it is known by the file beside it (rhea_name_precompiled).
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_PCH_EXTSUM=true
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${RHEA_CCACHE})
endif()

include(CheckLinkerFlag)
if(NOT DEFINED RHEA_LINKER)
  foreach(linker mold lld)
    check_linker_flag(CXX -fuse-ld=${linker} RHEA_HAS_${linker})
    if(RHEA_HAS_${linker})
      set(RHEA_LINKER ${linker})
      break()
    endif()
  endforeach()
endif()
if(RHEA_LINKER)
  add_link_options(-fuse-ld=${RHEA_LINKER})
endif()

# SPDX-License-Identifier: Apache-2.0
# Components: development (headers, CMake and pkg-config files) and runtime (program and models). Nothing installed
# depends on the architecture or on absolute paths, so an install tree can be moved.
if(NOT VLMEST_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(vlmest_cmake_dir ${CMAKE_INSTALL_DATADIR}/cmake/vlmest)

# One export set each: find_package(vlmest) then works without nlohmann_json.
install(TARGETS vlmest EXPORT vlmest-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
set(vlmest_exports vlmest-targets)
if(TARGET vlmest_json)
  install(TARGETS vlmest_json EXPORT vlmest-json-targets
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  list(APPEND vlmest_exports vlmest-json-targets)
endif()
foreach(set IN LISTS vlmest_exports)
  install(EXPORT ${set} NAMESPACE vlmest:: DESTINATION ${vlmest_cmake_dir} COMPONENT development)
  export(EXPORT ${set} NAMESPACE vlmest:: FILE ${PROJECT_BINARY_DIR}/${set}.cmake)
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/vlmest-config.cmake.in ${PROJECT_BINARY_DIR}/vlmest-config.cmake
                              INSTALL_DESTINATION ${vlmest_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vlmest-config-version.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/vlmest-config.cmake ${PROJECT_BINARY_DIR}/vlmest-config-version.cmake
        DESTINATION ${vlmest_cmake_dir} COMPONENT development)

file(RELATIVE_PATH vlmest_pc_prefix /prefix/${CMAKE_INSTALL_DATADIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" vlmest_pc_prefix "${vlmest_pc_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/vlmest.pc.in ${PROJECT_BINARY_DIR}/vlmest.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vlmest.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

if(TARGET vlmest_cli)
  install(TARGETS vlmest_cli DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/vlmest COMPONENT runtime OPTIONAL)
endif()

# SPDX-License-Identifier: Apache-2.0
# A libnvidia-ml.so.1 in a folder of its own, for the tests of `vlmest watch --nvml`.
add_library(vlmest_fake_nvml SHARED ${CMAKE_CURRENT_LIST_DIR}/nvml.cpp)
target_compile_features(vlmest_fake_nvml PRIVATE cxx_std_20)
set_target_properties(
  vlmest_fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SUFFIX .so.1 LIBRARY_OUTPUT_DIRECTORY
                                                                 ${CMAKE_CURRENT_BINARY_DIR}/fake_nvml)
vlmest_warnings(vlmest_fake_nvml)
target_compile_definitions(vlmest_tests PRIVATE VLMEST_FAKE_NVML="$<TARGET_FILE_DIR:vlmest_fake_nvml>")
add_dependencies(vlmest_tests vlmest_fake_nvml)

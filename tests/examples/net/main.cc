// The network as a function from an image to probabilities; compares them with what prunerc gave.
// usage: call_cc IMAGE.npy WANTED.npy
#include <small_cnn.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// As the library says it: sizes need not be known when this is compiled.
std::size_t num_elements(const PrunercParam& param) {
  std::size_t count = 1;
  for (int d = 0; d < param.ndim; ++d) count *= static_cast<std::size_t>(param.shape[d]);
  return count;
}

std::vector<float> classify(const std::vector<float>& image) {
  std::vector<float> probabilities(num_elements(net_small_cnn_info()->params[1]));
  if (net_small_cnn(image.data(), probabilities.data()) != 0)
    throw std::runtime_error(net_small_cnn_error());
  return probabilities;
}

// The numbers are the end of an .npy file.
std::vector<float> read_npy(const std::string& path, std::size_t count) {
  std::vector<float> numbers(count);
  const auto bytes = static_cast<std::streamoff>(count * sizeof(float));
  std::ifstream file(path, std::ios::binary);
  file.seekg(-bytes, std::ios::end);
  file.read(reinterpret_cast<char*>(numbers.data()), bytes);
  if (!file) throw std::runtime_error("cannot read " + path);
  return numbers;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: call_cc IMAGE.npy WANTED.npy");
  const PrunercInfo* const info = net_small_cnn_info();
  const std::vector<float> image = read_npy(argv[1], num_elements(info->params[0]));
  const std::vector<float> wanted = read_npy(argv[2], num_elements(info->params[1]));
  const std::vector<float> found = classify(image);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!(std::fabs(found[i] - wanted[i]) <= 1e-5F))
      throw std::runtime_error("probability " + std::to_string(i) + " is " +
                               std::to_string(found[i]));
  }
  std::cout << "right, " << info->name << " for " << info->cpu << "\n";
  return 0;
} catch (const std::exception& wrong) {
  std::cerr << wrong.what() << "\n";
  return 1;
}

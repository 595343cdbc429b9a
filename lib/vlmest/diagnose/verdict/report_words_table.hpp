// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>

/// Words of reports with the weight of each for each cause.
///
/// Written by docs/generate/report-words.cpp, by logistic regression over the 315 reports of 7 open collections
/// (tests/data/corpus/open.json to open_7.json) whose causes are settled: see word_weights.hpp beside it.
namespace vlmest::diagnose::report_words_table {

inline constexpr int reports = 315, without_cause = 24;
inline constexpr double step = 0.07134, length = 3;

/// A cause, and how likely it is before a word is read. In the order of the letters.
struct Learnt {
  Cause cause;
  double bias;
};
inline constexpr std::array<Learnt, 16> learnt{{
    {Cause::activations, 0.7488},
    {Cause::attention_scores, 0.9534},
    {Cause::encoder_cache, -1.907},
    {Cause::engine_budget, 0.1026},
    {Cause::fragmentation, -1.625},
    {Cause::gradients, -0.8096},
    {Cause::host_memory, 2.244},
    {Cause::kv_cache, -0.6363},
    {Cause::leak, -0.1351},
    {Cause::logits, 0.1118},
    {Cause::optimizer_state, 0.623},
    {Cause::other_process, -0.5167},
    {Cause::profile_run, -0.1166},
    {Cause::slow_data, -0.847},
    {Cause::vision_tiles, 0.5076},
    {Cause::weights, 1.302},
}};

/// How often answers were right, by how probable they were called: each collection read by the words of the others,
/// with the reports whose cause nothing settles.
struct Band {
  double from;
  Counted counted;
};
inline constexpr std::array<Band, 5> bands{{
    {0, {12, 88}},
    {0.3, {25, 88}},
    {0.45, {42, 78}},
    {0.6, {33, 44}},
    {0.75, {34, 41}},
}};

/// A word, in how many of the reports it stands, and a letter for each cause: so many steps, from A (-26) to z (25).
inline constexpr std::string_view words =
    "abi 3 ZcahaaXaaaZaaaYZ able 3 ZYaZaabaZZZaagYc abort 3 deaZaaYaaaaaaaZZ about 9 cYaZaZZZdbXdZdYc "
    "accelerate 8 ZXaeaZWZZZgZZadb accelerator 4 aZaZaZZaaZjaZaZY accumulation 18 fZaZabYZYdfZZZdV "
    "active 5 ZZaiaZZaaZZcZaZa actor 9 ZYaZaZeaegZZZaYX adam 3 ZZaaaZcaaZeaaaaY adamw 4 ZZaZZZYaaefZZaeY "
    "addr 3 gZaZaacaaaZaaaZZ address 3 ZaaaaacaaaZaaaZe adjust 6 ZZaZaabcZZfZZaYa after 21 iZZWZYbXlXYdgYSY "
    "all 12 YbaYaZaYYYWYdcbk alloc 44 cdZWccXbYYbaZZbb allocat 69 aidabdUZaYYfaYVX allocate 84 cjZYbcVZZaadZYTb "
    "allocation 15 VZZYedYgYYXYXZbj allocator 6 YYamaaWZZZXZZaYg allow 7 ZjdZaaXZZZZZZacY alpha 3 YcaaaZdaaZYZZagY "
    "already 29 VgacYfYZYZXgXbWc also 6 YcaZaZZcZZddeaYW alway 4 XZaZaafaZZZZZeca am 16 cZabZZYcYXcYYZge "
    "amount 4 ZfaZaZZZZZYZZefX an 27 hWZbZYVccabcZYjR anaconda 11 XaaXYgXZZbbXlaXa and 115 ZaZWcabYbcYbacZb "
    "any 10 oXaYaZYZYYeZYZZb api 12 aXabZZafdYYcbZXb app 3 ZdaZaaZaaaZaaaad appear 3 aeaZaacaaaaaaaZY "
    "are 20 bZaYZZbYeZYabcgV args 26 WVaeYeWbYWgedZhT around 5 dYaZaaaZeZYZZZbc as 20 ZVabeYUZcZeXYhcb "
    "ascend 4 ZZabaZYZZZZYdadd at 28 YbfcZYdbYcYYZZXd attempt 9 YgaYaZVZeZWdZZcc attention 16 XsaYZZcdYYXXXZYa "
    "attn 11 XiaZZZcZZYVYYZjZ auto 7 YcaYaeZZZZXZhagX available 16 dXZXaZcgcYXXnZWV avg 5 ZZaZZZZaaZoZZaZY "
    "avoid 40 bbZbdZWZYZYiaZYb backend 11 bcacaYVcXZYgYZXg backward 7 YXaYhoYaZYaXZZZX bad 3 YZhZagYZaaZZZaZZ "
    "base 12 dZaWaZdbfYiYYZTa batch 54 gXZWZbYbZaiZcbbQ be 21 cacbaZacYaaYXcZa because 6 ZYaZaadadZZZZZcb "
    "been 3 ZZaZaadagZZaZaZY before 6 ZZaZaabZZZYZeabc bf 14 bWaZadUZZcfZZZYi bfc 3 ZZaZaaYaaZYaaaZk "
    "bfloat 10 XVaZZZfZZYgZYZfb bin 10 XhaZaZbZZZeYZZdW bit 6 ZaaZaabZZeZZZaba blip 7 XXaZaZaZZZeYZZYm "
    "block 13 bXaXaZWhZZYYpZYX both 4 eZaZaaZZZZZZfZYb bsz 3 ZZaaaZcaZeZaZaaZ buffer 19 ciacZZTccYXYYZgY "
    "bug 16 eWZZZYbXfYXajZdU build 7 YeaZaZaZZZYZZaah bus 3 aaaaaafaaZaaaaaZ but 66 ZbZbfYWXaYWbbbgc "
    "by 79 eccabcXXXbViZaUa bytes 14 blaYZbeZZcXXZZXY cach 10 YXaXacdYZYYZmZeW cache 28 XXfbZYZmbXWYeZZY "
    "call 37 ZYZeYbXabaYZeZZd can 36 WZZdZYUaXafWbcWn cannot 3 ZZaZaacdaZYZZaad capacity 55 TiZbZeUYYbXjbZZZ "
    "capacty 3 rUaZfZaaaZaTZaZX card 5 YWafaZbZZZYYeZWh cards 4 oZaZaZXZZZXZZaXd case 3 ZZaaaaYaZgZZeaYZ "
    "caus 11 XXaYaZefYfXZZZeY cause 8 lXaYaZYcZcXYcZbW cc 5 YZaZaaZZZZfZaaZe certain 3 aZaaaacaaaaZeaZa "
    "chat 11 YbcXaeWaYYaXgZbe chatglm 3 hZaaaaeaaaYaaaZW checkpoint 33 ZdZYZYeYbXbYaZec chunk 3 ZZakaZZZZfZZZaYX "
    "class 4 ZZaZZaYdafZZYaZc cli 10 YfcZaZdZZZYZZZbZ client 6 iYdYaZXYZZeZWaYd clip 7 lXaZaeXZZZWZZabc "
    "cls 5 YZaZafYZaZYaZaYi code 29 VVfeZbpbYZZbXZYX com 3 cZaZaaaaZZZZaaZf comfyui 3 ZYaaaahaaZZaZaYc "
    "command 7 YcaeaZaZZZXZYZde commit 3 ZZaZaaVZZaZZjaZf common 3 fZaaaaZZaZZaZadZ compilation 3 ZbanaZZZZZZYZaZY "
    "compute 9 ccaZaZXZZjYZZZfV conda 11 gWadZcaaZYfYWadY conf 35 caZXddXZYZabaZcb config 24 ZZbeZYdYZacXZZYf "
    "configuration 5 YZaYaZebZZfZYZXc consum 3 fZaZaaeaZZZaaaZY contain 5 ZYjZaabZZZYZZacY "
    "container 3 aZaaaagaZaaaaaZY content 3 ZiaZaaZaaZZZZadX context 12 fXaYaZYicaYZaZcW convert 3 ZbaaaaZaaaaaaaZd "
    "core 10 eXacaceZZYZZZaYa count 5 dZaZaZYZaZcZcaZc cpp 9 cXakaZeeZZYZYaYU cpu 27 YVaYZYzaXZYdXbZU "
    "crash 14 XXaZaZgZYdYZZZde create 4 fZaZadbfaZZZZaYV cross 4 ZXaZZZZaapZZZaZZ csrc 3 ZYapaaXZZZZaZaZY "
    "cu 6 ebaXZZdZZZYYdZdY cuda 136 bbZeacPXbcfaYYXh cudamalloc 5 deaZaZYeZZYZZaZZ current 10 cYajaeXZYYYbYZbY "
    "cutoff 5 ZZaaaafaaacaaaZZ data 37 VVZWYbhbeacjWcbS dataloader 16 XXaZaZpZZYdZZeYX dataset 17 WWaYaZjZXcZZZcmT "
    "debug 3 ZYaZaafaaaZZaaZe decoder 6 YWjZaZXZZYZhYZdb decreas 5 ZZaZaaYgeZdZYaYY decrease 7 bXZYaZWdZYZikZXW "
    "deepseek 4 ZYaZaaZjaZZZZaZd deepspe 27 XWaYZbaZZYuYYZZZ default 13 fWacaZXdYXdZYddZ demo 10 YcaZaZXZZZYYZaXo "
    "deploy 4 ZZadaaYZdZZZZZYh describe 3 ZoaZaabaZZYZaaWX desir 3 ZYaZaaZZZaalYaZZ determine 6 ZZaYaaZZaZZYnaZZ "
    "dev 7 ZdaYaZcZZeYZceVZ devic 16 XcaYZcYZZYcdYZYh device 56 eWZbZZUZcYecWYaj dict 4 ZiaZaZXaaZZZZaZe "
    "did 4 XbaZhaXdfZZZZaYX died 4 aZaaaaiaaZZaaaZY dim 7 eeaZZdZaZhZXYaYW dir 4 ZYaZaacZZeZZZabc "
    "disable 4 YYaZaafaZZZkZZYY dist 6 ZgaXafXZacZXcaZY distribut 10 YWaYadacZZacaaca do 14 XXaZaZhZZZZZZZbh "
    "docker 4 ZZaZaabaZZZZfaZd docs 15 XcaZdYbZZabbdZbY documentation 34 deZXdaZZZZZbaZZb does 12 baaYZZUeYYdcYZfb "
    "doing 3 YgaZaZdaZZYZZadY don 3 ZZaaaaXaaZdZaaZh dot 6 ZmaZZaYaZZZZYaYb dp 5 ZeacaeYZZbZZXaeX "
    "dpo 3 ZWaZYZYaZZXjZajY driver 3 ZaaaaZZcaadabaZZ ds 7 ZZaZaZaaaZgaZaZb dtype 22 VcZZZYagYXaXbZhd "
    "due 21 XbacfciZYYXYZZcX dur 23 UeZhWbbYfWVWcZeb each 13 aXaYaZaYkYhYZdUa eager 4 ZdaeaZYcZZZZcaZY "
    "elastic 4 ZYaZaZeaaZZeZaZa else 3 ZZaaaaYaajZZaaZY embed 7 ZcaeaZXZZZZYgabZ embedd 4 cdaZaadaZZZYdaYY "
    "embedding 6 ZdafaZYZaZZZhaWY empty 4 YXaZamgaaZYYYaZX en 3 aWaaaZdaaZZjZaaX enable 11 cbadaZeZdYWZYZbZ "
    "encode 3 mYaZaaYaZZZaaaZY encoder 13 WghWaZZYYYeYaZhU encounter 8 YeaZaZaZYdcZZZZc end 3 ZZagafZaaaZaZaZY "
    "enforce 5 ZYadaZgcZZZZcaZX engine 23 WYZXaeXgZYedicWV enough 11 aXafaZcfYYYZeZWc entropy 5 ZXaZZZZaaqZYZaZZ "
    "entry 3 eYaZaaYZaZZZZaZi entrypoint 7 ZZddaZXhZZZZbaZX environment 15 XRadhYaZZabcdZbY envs 32 VXaaYcbaZacZfZda "
    "epoch 3 ZZaZaacaZZZaZeYd error 91 aaahYXTbaVdYaYfe eval 16 bcaYZZcZYaYYZZdf evaluation 7 YYaYaZUZkiXZZZab "
    "even 16 WWaYaZZYYehbfdYY eventually 7 ZYaZaagZiZZZZZaW every 3 ZZaaaabaZfZaaaZb exampl 10 YcaZaZaZZbXZdecZ "
    "example 11 XbaZaZdZYeXYdZcb exceed 8 YgiZaZVZZZZZYZYf exception 15 YcahZZaZZfYdaZWW execute 4 aZaZaaZdaZZagaZZ "
    "execution 7 XWaeacacZZeZYZfX executor 16 XaafZYUeZYcdbZZc exhaust 6 dYaZaZXZeZeZZaYc exit 8 ZYaZaeiaZZZYZaZa "
    "exitcode 3 ZZaaaafaaaZYaaac exits 3 ZaaaaagaaaZaaaZZ exp 6 ZYaZZZbaaZnZZaZX expandable 17 WbaXibXZZZbacZbY "
    "export 3 YYaZaZYaYZZkZZhY extension 4 YcaZaabafZZZaaZZ external 3 ZaaZaaZaZagaaaZb extremely 3 ZYaaaaWZZZZeZlZY "
    "factory 3 ZZaZaadaaZaaaaeY fail 25 YZaaYafbYXabYZZf fails 9 VYaeaZZgcZYZhZaW failure 4 YYaZaabfZZdZZaYb "
    "false 15 XbaYabcZZbcZbdYb file 82 YYZdabZZYaZacYag find 3 faaaaacaaZZaaaZZ fine 16 ZcaYZbYZYahbYZZc "
    "finetun 13 dWaZaZZZZZkYZeeU finetune 17 kaaXZgdYYXhYYZVU first 5 YZaZaaeZfZcZZacU fit 5 XYaZaaXhZZYZZZfg "
    "fix 4 ZdaZaaaZZZZZeaYd flash 8 dfaZaZdZZZWZXZea float 13 XXabadbaYhWYaZad follow 9 YXaZaaXfeZeZZZab "
    "for 91 aYZVdZRadbVbddfd format 4 ZgaZaZaZaZfZZaYY forward 18 hUadXaWZZkXVhZfT found 4 ZZaZaaaZZfZZfZXb "
    "fp 15 YWaXagYYbeZYZZai fraction 6 YYafaZYYgZZZZZbc fragmentation 39 cbZbhZWZYZYeZZYc "
    "framework 6 YbaZaZZZZZcZZafb free 67 YdZcbdUXeZXjaYWY freeze 7 fWaaaZaaaZfZZacX from 35 YTbWdZcbcfXbcZXf "
    "fsdp 9 XYaZaiWZZaaZZZXm full 21 TXacZfbZYcnYYZZZ func 6 ZdadZZZZaZgYbaYY function 3 gZaZaaYaaaZZaaZd "
    "functional 4 YbaZYZZaafZYhaYZ fusion 3 fYaZafYaZZZaaaZb gb 82 WbZZbaYbXaeabZYf geforce 4 ZZaaaaYZaZZZZafe "
    "gemma 8 XYaYaZWYddaZZZeg generat 3 ZfaaaZbaaZcaZaZY generate 11 ciaZZZdZYYYXXdYd generation 12 mgaYaYZXZcUffZVS "
    "get 25 ZVacZYfYYiVXYZZj gets 6 XYaZgaiaZZZZZaYZ gett 9 XYaeaZaZhZXZZZfa ggml 8 hXaZaZWdZZZZZaag "
    "gguf 3 fgaaaaYZZZZZZabW gib 74 aiZZecYZXbYiYYVW git 3 dZaZaaaaaaeaaaZY giv 3 ZYaZaabaZaZaaacd "
    "glm 4 ZYddaZZaaZZXZaZi global 4 YdaZafaagYYaZZWZ go 4 cYaZaaYZZZZefadW goes 3 YZaZaaWafZZaZaZi "
    "google 5 YaaYaZXbgZXZZZec got 7 XYaZaZgZeZbZZZbZ gpt 7 YcaZadcZZgYZZaYZ gpu 137 ZaaZabYaaaadXaZe "
    "gpus 23 eXZWZYYgWXfbXZbh grad 7 YWaZZmaZZdgYZZXV gradient 25 hYaYZdVZcadYYZfW grads 4 ZYaZarYaaZYYZaZW "
    "graph 4 dYaZakZZaZYYZacX greater 6 YjaZaaYaZZZZZadY grid 4 ZeagaZXZZZZZaacY group 6 dYaZahXaZcaZZaZY "
    "grpo 7 XYaehYYZfkXZYZXV had 3 ZZaZaaXaemZZZZWY half 3 ZZaZaacdfZZZZaZY handle 4 cYaYaZXfZZZZhZcY "
    "handler 3 ZaaaaadaZadaaaZY happen 3 ZYaZaZYaaZZlZaaa hardware 5 YWadhZXZYYlYZZeV has 45 caZZdcWYYdcbcYbW "
    "have 20 XVaYZZhZbYXbYcfe hbm 3 ZZaaaaYagaZaaaZd help 4 YZaZaabdfZZZZaYc hf 10 YaaYaZjYYZbXYdWg "
    "hidden 7 XZaYZZYZahXZcalX high 7 ZeaZaZdZZZYZZafX higher 7 cbaZaeVZZZYZZZfb hit 3 ZZaejZbZZZYZZZYY "
    "home 20 XTagYcZYZZdgbZZb host 11 aYaXaZddYdXZYZcd how 10 XbaZaZYcZbiZZZXd however 10 cYaZaZUZcYfZZccd "
    "html 15 XcaZdYbZZabbdZbY https 17 XbaYdYZZZZabcZaf huggingface 3 ZYaYZaXZZZYZZaki id 11 YgadaZYfZbYZYZZY "
    "if 55 bZZacbVaabWcYdfW imag 16 caZXZZVYfYWeYYqU image 39 YceZZaSXYXXccikX img 3 hfaZaZZaaZZZZaYY "
    "impl 7 dZaYaZcZZYYZXZfc in 156 acZabaXZacWaabca includ 12 WdackYYZZdcXcZXV increas 9 ZYaYaaZkcZZZXfYY "
    "increase 8 YYidaZXZdZZYgZYX index 6 YbaZZZYZZiZZcaZc infer 5 gbaZaZYaZYZZZaea inference 23 agaaWYVYbaWacZhb "
    "info 17 ZXaXaZfcZYcYfZcZ information 3 aZaaaafaaaaaaaaZ init 20 aWaeaaZaZXaYgZZd initializ 9 ZYcYaZWkZZYZaaYf "
    "initialize 11 dYaXaZWcZZfZfaWb inner 3 ZdaZaZZaaaeaaaZZ input 33 gdfaYdZbaZVWebaS install 4 YXaZhabaZfZZZaYZ "
    "instance 3 fZahaaWZZZZaZaZb instruct 43 XdZYZXXbcZhaVYkY insufficient 6 ZVafaZbZZZYZZafd int 6 cXaZafZZZZYZcaYf "
    "intermediate 3 aZaZaaZZaZaahaZZ internvl 6 YYaZaZXZZZZZZael into 8 XXaZacZZZYcgZdfW invalid 3 ZfaZaaYgaaZaZaZX "
    "io 3 aaaaaabaaZaaaaae ip 4 aZaZaacaadaaaaaZ is 122 beZYcaXbYbYeZdZV issu 5 YZaZaaWfZecZZZfV "
    "issue 21 WdZaZcacgaYYYYgU it 65 aZZYbagbcaXWWYXj item 4 gYkZaaXZZZZZZZXZ jit 3 fYaaaaZaZZZaaaZe "
    "jpg 4 ZgaZaabaaaZaaabY json 11 bYaZaZaZZZiZZZbZ just 4 YYaZaZWZdZYZZobY keep 5 YYaZaZXZYfYiZaYe "
    "kernel 4 ZaaZYZcZZYZZmaYY key 3 ZZaZaadZadYaZaZd kill 29 WWaYdczZYYZZYZXS kv 15 bXaXaZVkZYYZmZaX "
    "kwarg 20 bbadXXVcZWgcbZcX label 5 eYaZaZYaZjZZZaZZ language 6 ZYaZaZbZZcYZeZea large 28 kZZXfaUYYfXWabdX "
    "larger 5 ZZaZaaXgZZZZYagZ last 29 XbaaZYZbZaZbcZXi latest 6 ZYafaaZZfZZZZZYd launch 10 YXaaaZcdbZbZZZfY "
    "layer 10 abacghUYYYXZYZgX lead 3 ZcaZaaXafaZaZeYY leak 6 YdaZaajZZZZZZaZY left 5 ZYaZaZaZZcYeZafa "
    "len 24 ZZdeZYfbZZZXgZWX length 33 ccfWZaSfdgdXZYXV less 6 YYaZaaXZdZZjYZcb level 3 cZaZaahZaaZaZaZZ "
    "lib 59 bbZbYeZaYZbZcZZa libc 3 ZcahaaXaaaZaaaYZ like 7 ZYaZZZaaaeeZZaZb limit 14 YXgZaZhYYZXZecbX "
    "line 75 ZYZdXbXZYeZadZYf linear 3 dXaaaZdaaZYZZafZ linux 3 ZZaZaacaaaZaaaZg llama 29 aXZbZYkbXXaZYZfZ "
    "llamafactory 5 ZYaZaZeaaZcaafYY llava 12 ZVaYadZYYclZZZbX llm 23 YZZbZYdYYWZfibfS lm 6 eYaZabbZZgYdXaZX "
    "lmms 3 ZcaZZaYaZfZZZaeY lmsys 3 eZaaaZbaaacaaaZY load 56 WWZWZadcXYWacbWu local 25 VXcYZbbYcdbbZZVi "
    "log 8 YdaYaZcZZmYZZaYX logit 10 YWaZaZWZZwYfZaYV logs 3 ZZaZaacaaaaaaaZf long 6 ZbaZaaaaZeZZZagX "
    "longer 3 ZdaZZaYZaZZZdadZ loop 5 ZaaZaZbaacdaaaZY lora 15 fXaZZYjZZYUXZZhb loss 12 XXaYZfbZekaXYZXW "
    "low 5 ZZaZaagaZZZaaeZY lr 5 ZZaZaZcaaZiaZaZX machine 7 YXaeZZcZZZZWZaYn main 19 ZYcXaeaYYZXdeZac "
    "make 3 ZcagaZYZZZZZfaYY malloc 5 ffaZaaYaaaZaZaYZ management 33 deZXdaXZZZYbaZcb manager 4 aZafaacZaZZZZaZa "
    "many 3 ZZaaaabaZaZaZahZ map 5 ZXaZaZdaaZZZZaeg mask 4 ZhaZZZZaZZYZZaeZ master 5 YfaZahdaaZXZZaWX "
    "max 87 ZbbZZbXbcbYceZaX maximum 13 YjaYZZceZYYZbZaX may 7 eYacaZZZZZdYcZcV maybe 3 YZaZZZhaZZfZZaYZ "
    "mb 32 gcZbbabYYYWdXZab me 4 ZZaZaaYZaZZZZadi megatron 6 YdaYaqXZZbYYZaYW mem 13 bWadacYYnYZYYZYZ "
    "message 4 ZZdaaaeaaaaaZaZY met 3 aaaaaacaaZZaaaZd metal 5 YcafaZXZZZZZZafY method 10 gXcYZdXdZbXebaXW "
    "mib 51 gNZZVcVaYWZpcZYj micro 5 YYaZaeXagbdZZaYY might 4 ZZaZaabdaZZaZadZ min 5 ZWaZaZXagYXZZanY "
    "miniconda 16 YZadZYabZYZdXZXi minicpm 3 YXaZaaXZZZfZmaZX minigpt 3 aZaaaaZaaaaZaaah miss 3 ZZaaaaYaZZcaZaec "
    "mistral 3 ZZaZaaXaaZZaZaYl mlp 3 dYaZaZZaZYcaYaiX mlx 5 ZkaZaaYaaaZaaaZZ mm 14 WWgYahcYYYdYgZZX "
    "mmproj 4 WeaZaaYZZZYZZafd mnt 4 ZZdZaZcZaZZaeaZb modal 5 ZYaaaacaaZXYhacY mode 6 fXadhZcZZZXYYdXX "
    "modul 10 faaYYYaZZXXYeZhZ module 18 bZaYaYWZZfcXYZci moe 4 YYaeieWZZZYZZZYc more 8 YXaZaZeZZZbdZZYf "
    "most 27 XcaaZYXcZaZbccXg mp 5 ZYaYaeZZaZXeeaZb ms 4 feaZaaaaaZZZZaZY much 3 ZZaZaaZdaafaZaZY "
    "multi 15 XZaYZZYZZcZWdZeh multimodal 7 YgaXaZcZZZYZbZWh multiple 4 ZYaZaZbZZZYfZacc "
    "multiproc 8 YXaWZZXZZZZidadf multiprocess 12 YaaYaZibZZYgaZYX my 19 ZVaYZYaYYdbWYbgi name 28 aXbXabWaYaXYXZik "
    "need 9 aXaYaZVhZYXZedae new 11 XaaYabbZZbdZZZfY next 3 ZbagaabaaZZYZaZZ nn 9 gaaYYZYaabYXdafZ "
    "nnod 5 XYadakaaZZXZZadX no 17 WgZgZZjcYYWYdZTY node 20 cZabZfiZYYXYYZaY nodes 3 ZYaZagaaaZbZZaZZ "
    "non 14 VcabkYXZZgaWbZeT none 10 XXaYaZeeZfVZaZbe not 42 YWZcZYbfbWVXeYic notes 13 XcaZdYZZZabbdZbZ "
    "now 5 gXaYaZeZaZWZeaeW nproc 10 eaaZZhaZZYZZZZcY npu 7 YZagaYYZZZZbXade num 39 fWbWZabeXbZXdgaV "
    "number 5 YZaZaaZgZZYZYaec nvidia 16 UdaYZZdZZYiYYdeY object 5 ZiaYaaYaadZZaaZY occupy 4 geaZaZYZZbYZZZdX "
    "occur 6 cWakZZXZZZgYZZXc ocr 4 eXdYgZXZZZYZZZiV official 4 ZhaZaabZZZYaZZeX offload 18 gVaYaYWYYdSYYZim "
    "ollama 5 dYaZaZcZZZZhZZeV omni 5 ZeaZZacZZZYcZaYd on 99 eTZXYZacYcZcZacf one 12 XbadaZXZdYXYYfZf "
    "onevision 3 ZWaZaaYaZgYaZajY only 25 aZZbZYYYZaaXbbjb oom 104 iWZcbaUWXcaZYXhe op 7 dYadaZaZZZYZZaZf "
    "openai 8 cXacaeWhdZWZcaYX operator 3 fYaaaaZaZZZaaaZe opt 16 dcaXZcWfZYgbVZWb optim 6 ZYaZZeXaadfZZadX "
    "optimizer 16 bXaYZhVZZbnXYZXc or 37 YdeXZYWfYXXdaZfb org 16 WcaYdYYZZafbcZba original 3 ecaZagZaZYZYZaZX "
    "other 12 XcaYaZZYebYkYZXa out 141 cbZdabPZbccaYYZg outofmemoryerror 61 YYZYeaTaYebcbYYh "
    "output 20 agaWYbbZYdWhVdcT ov 3 ZeaZaaYaZgZZaabX over 5 YdaYaZZZeZYZZacb owl 3 eYaZaZXaiZZZZaYa "
    "own 4 ZZaZaaaaZZeaaZfZ packag 56 bZZbYeYaYZcZdZaa padd 7 YXaZZZcZfcYYhaYZ parallel 14 YaagZcYcebXbaZWY "
    "param 10 hWaYacaZZYbYZZda parameter 14 aWacaZXYYYhZYcdd partition 3 hZaZaaYZaZbaZaYb pass 3 XYaZadYZZZZZZlcY "
    "patch 9 fbaYadXZfZWgcZWV path 31 YabZZdbXdXbXXZcg per 45 eYdXZcdYabbcaYZV phi 5 ZYZZaZgcZZZabZYd "
    "pid 23 YaaZZYkZZaYfbZXZ pip 3 YYaZhaZaaZZZZaZd pipeline 4 ZYaZafbfZZZZYaYb pixel 15 XcadZYeZeXZZZcdW "
    "please 7 YdidaZbZZZZZYZXX point 4 YYaZaaaaZhZYZadc port 13 XbcfadccYYXbWZZa possible 4 ZZaaaabZfZZaaadX "
    "post 5 bZdiaZXZZcZZZaYY ppo 4 ZYamaabaZcYaZaYW pre 8 YYiZaZVZZZfZYdYb precision 3 YfaaaaYaaZeaaaZa "
    "prediction 4 YZaZaaYZheYZZZdX prefill 7 abagaZWdZYYYeZdW prefix 5 ZZafaZgZZcYZYaYa prepare 5 ZaaZaZYaaZdZZaec "
    "preprocess 5 ZZaaaaaaZaaaaeYe pretrain 19 XVaYabbZeYVYYZcq problem 12 dXadZZUYcaWfYdac probs 5 ZcaZaZaaahaZZaaY "
    "proc 3 ZZaZaaeaaZZaagZY process 55 aZZddZaYeaWhbbXU processor 8 XXaZaZZZfZXhZhXa product 5 ZnaZZaZaaZZYYaYY "
    "profil 3 ZYaZaaZaaaZZjaZZ profile 6 ZfaXaZYZaZZYmaXY program 6 ZZaZaafZZZZaZaYg project 3 ZZaaaaYaafeaaaZZ "
    "projector 3 ZZaaaacaaacaaacZ prompt 18 abgYaYdYcYWYcZbb py 112 aXZZXdaaXdXcaYbg python 88 YaabYcacZYaZaYZg "
    "pytorch 58 ZcZbbfYYYZYgbYYY quantiz 3 ZZaZaacgaaYaZaZa quantization 3 aZaYaacZZZaaeaYe "
    "question 5 ZYaZafWZZgdZZacV qwen 79 VjZfbYVYbcgZYZeR raise 12 dYaYaZegZbZZWacX ram 19 WXadZZvYXcWcYZUb "
    "ran 8 XXaZaZVgeZYgYZYg range 3 YYagaZXZiZZZZaZa rank 31 WcahZXbZZYeWfZaZ rate 3 ZZdZaacZZZZaZeYZ "
    "ray 8 ZZaZaaiaZcZZaaZY reach 4 ZZaZaafaZZZaaeYa read 3 dZaZaZdaadZaZaZX readme 4 lcaZaaaaZZZaZZWX "
    "recent 26 XcaaZYYcZaZbcZXh reduc 6 dXaZaZbhZZYXeaXb reduce 16 cegYZdYYYYUeaZdV remote 12 aWecZZddZYYYaZXd "
    "replica 4 YZaZaaaaZZfZaaZd report 5 gYaZaZWZYZdZZZfb request 22 VZdZZZcdaYfdXbbV requir 4 YZaZaadZZZdZZaYg "
    "requirement 3 YZaZaaYaZZXaaZmb reserv 55 ZfZbcdUYYZXhbZbZ reserve 4 hYaZaaYZZZZZeabX "
    "resolution 7 XfaYaZWZYZbZeZhX resource 10 cbaYaZZZdZdZZaYa response 3 ZYaaaZaahbZZZaZZ "
    "restart 3 aaaaaafaZaaaaaZZ result 16 beaXZYaYZXbXbdfZ return 26 bbaZYbZaZgdXbZaW revision 3 ZZaZaadhaZZaYaZa "
    "rollout 6 ZYaZaZcafgZZZaZY root 14 YZaeadcbZbYYXZbb rtx 21 VWabZYXbYebeXZYm run 49 ZdZaYZUZXXdgcYaf "
    "runn 24 YlZZdYgYaWWcaZeR runner 13 YdaZaZYYZZXXhZah runtime 10 YZaiaeWZZZcYcaYZ "
    "runtimeerror 30 aeacZejZYZXbXZWX same 10 XWaeZdWZYYXeYdWk sampl 3 ZZaaaaoaaaXaaaVY sample 3 ZkaZaZcaaZYaZaYW "
    "sav 3 ZZaaaabaZZXaaaZj save 8 YYaZaZlZZZeZZaUc scal 4 ZlaaZaaaaZZYZaZY scale 4 YfaZaZcaaZaZZaZc "
    "scheduler 6 YYadaZYZZZfZYakX script 12 gcaYaZWZdYhYZZVb sdpa 5 ZbaZaZbaZZYZZacg second 4 XXaZhZZZYZZZZkXb "
    "see 38 cdZXdaYZYaXaZZYi seems 4 gZaZaaYZZZZZZaYf segment 17 WbaXibXZZZbacZbY self 50 bcZjZeTaYXZUfZcY "
    "seq 8 dYaZaZXfZiYZbaYX seqs 6 ZZZZaagcaZZZcaZZ sequence 11 YfaYZdYZhbXYeZWY serv 8 cdcXaZWicZYZWZbY "
    "serve 12 YbecZZcYZYYZfZXa server 15 eWZkaZXdaYbYVZcY session 3 eZaZaaZZaZZaZaZg set 13 cjaYZZZZYYXYZeZc "
    "sett 45 baebcZYYYYadYaZZ setting 5 YYaZaaWZZeYZZegb sft 19 WXaZaccZZYeZZZnW sglang 9 XWanaZWYeZYhYZZa "
    "sh 5 XgaZaZWZZZaYZanX shape 5 dXaZZZYaZeYZZaZg shar 9 ZYaZaZoZZZXZZaWd shard 17 WaaYagheZYYYXZXd "
    "share 3 ZZaZaafaaZZaZafY shm 3 ZZaaaagaaaZaaaaZ should 7 XYaZaZWhZZiZcZcX shows 3 egaZaZXaZZdZaaYX "
    "sigkill 6 ZZaaaajaZZcZaaZW signal 8 ZZaZaahaaZZeZaZX since 3 ZZaaaadaaZZaZacb single 8 bYaZaZZZYbdgZZbX "
    "site 50 bWZcYcZaYYcacZab size 109 gccZZcYbYadYYZZW sizes 3 ZYaZaaYaaZdeZadY slow 4 ZZaZaaUZZZYZZvYY "
    "small 6 XdaZaZXhZYYhZZWc so 12 WYaZaZcZYaXjYZai softmax 5 YhaZaZZaaiZYZaYX some 7 YgaZaaYgZZZZYZab "
    "someth 3 ZZaZaaYZZZZaaaka source 3 cYaZahYaZZZZZaZc space 4 ZZaaaaaaZZYaaaZi speed 3 ZZaaaaaZZZZZalYY "
    "split 27 eaacbbXZZZXeXZcc sq 5 ZZaZZZZaaZoZZaZY src 7 hdaZaZZZaZgZXaXW stable 13 XcaZdYZZZabbdZbZ "
    "stack 3 YXaZaZYaiZZiZZdV stage 11 VdaZadcZZYdYZZXg start 14 WWacZdbkZYXhYZXY startup 8 YXiZaZYYZZZicZYY "
    "stat 8 XZaYaZXZZcbZcakY state 11 daaYaZXZZadZZaYg static 6 YYafaZYYgZZZZZbc std 3 ZcahaaXaaaZaaaYZ "
    "step 19 aYaXecYZYalYYfVX steps 22 eYaZZbdZYcdZYZcW still 13 bYaYaZTeYYfZcdYe stor 4 ZZaaaaYhaaZaYaZd "
    "strategy 5 ZYaZaehaZZVZZabc subprocess 5 ZZaaaaiaZZcaaaZX support 5 YmaZaaXZZZYZZaWf swift 10 XgaZaYdZZZdZZZdY "
    "sxm 4 ZZaaaaZaaZfaafXY system 5 ZZaZaamZZZYZZaYa take 5 eZaZaZXZaZbaZaZg target 6 YcaZaZeaadWZZZeY "
    "task 14 YYaZaZrZYYYZZZYb template 6 YkaZaZaaaZcZZaZX tens 3 efaaaZYaZdXaZaYY tensor 28 ZWZcdfSbYfYZbZXf "
    "tensorflow 4 YZaZaaYaZZfaaaZf terminat 3 ZcahaaXaaaZaaaYZ test 16 XcaYYcZZYaWhYZbh tests 4 ZeaZYZYaZZYiZaYc "
    "text 9 nWaYaZaZZYZZeZaW than 23 ZfZXZcZcbXZeZZZZ that 24 cWaYZZehbcfXXZYW them 4 ZZaaaaXZZcYZfaZe "
    "then 6 XYaZaZeZZZZdZZkV there 17 aZaYaZcYfYgbYZdV this 41 YcZcgYbdbZZYbdaS thread 3 ZdaZafdaZZYaZaZX "
    "threshold 3 aZaaaacaaZZZaaeZ through 5 XbaYgZYZeZZZcacY thw 4 ZeagaZXZZZZZaacY ti 3 ZYaaaaYZagZaZafZ "
    "time 17 YWaXZZeYnXXYYnaU tmp 4 ZaaZagfaZZZZZaZY token 31 bZdXZbXfXeYXgZZX tokenizer 5 ZYaZaaeZZZZZdacb "
    "too 4 ZZaZaabaaZZZdaZd torch 77 WXZZecaYXcadbYcb torchrun 6 YXaZaeWaZZcZaagc total 68 YgZbbdWaXZcfaaTZ "
    "tower 7 cdaZaeZaZZaaZaZY tp 10 YccfaZaZYeYYXZcZ tpu 3 ZZaaaaYagaZaaaZd traceback 28 XbaaZYZcZaZacZXk "
    "train 66 eWZbYddYWfibXcYS trainer 13 XXaYYZcZZnefYZXU transformer 22 YnaXZbVYZcWXWddd tried 78 ciZZbcTZXbcdaaXX "
    "true 48 VeZXbbbYbacZZbad trust 10 YWfcZZcdZZZYbZYd try 73 gaZabYaeZbWcXaUe tun 5 XYaZadcaZZhfZaYW "
    "tune 6 cYaZaZaZZYnZZZVY turn 3 ZZaZaaXaZfZaaaZe two 7 YYaZaeWcZZcZZZah type 39 XZbaZYcbYYaYXbhd "
    "ulyss 3 ZZaaaZZahYdaZaZY unable 3 ZZaZaafaaZZaZaZc unallocat 27 fZZaeaWZZbZdeZYU uncaught 4 ZcagaaYaaaZaaaYa "
    "under 6 cYaZaZWeZZeZcdaW unexpect 3 aaaaaadaaZaaaaaa unexpectedly 5 aZaZaZjaaZZaZaZX until 3 XbaZhZZaaZZXZaZg "
    "up 7 YaaYaZaeeZZdXZcY update 5 YYaZageZgYZZZaZY usage 26 WeaXWZdciXdZXbaY use 56 bVZYddTYZceabeXc "
    "used 16 aXaYaZXYbaYfeZae user 28 aWaeYbYYZabeaZaa users 7 ifaZaZXZaZZZZaYa uses 4 ZdaZaaYafZZZZaZc "
    "using 34 aWZldYaXcYZXYddW usr 12 YdaZadZZZbcbbaYY utilization 24 WZdeZYdkYYXdacWV utils 26 XaaaZccZZcYedZXa "
    "valu 6 ZdafaZbZZZZZaacY value 6 YbadaZYZZcZZZaZe valueerror 12 XXcYaZTqYZZhcZYV variabl 12 YRaZhYZZZabeeZcZ "
    "variable 4 ZZaaagcaaZZZaaaZ ve 6 ZYaZZafZZcZYZaYh version 12 bbacaZacYYbZXdXb very 7 YYaYaZZZkbZYZdcZ "
    "via 3 ZcaZaaYZeZZaZaYe vicuna 8 bUaZaZdZZZeWZaXk video 24 WfbWZYdYbYbYfZkS visible 16 XcaYZcYZZYcdYZYh "
    "vision 24 cgZXZcXZYXbYcZhX visual 7 dfafaZbZZZXZZZaW vit 9 edaYadTZeYchZZXV vl 64 TgZbZZVYcVjZZZiZ "
    "vllm 47 UVdicaVeXYUjmYaR vllmworkerprocess 5 ZXaXZZZaaZZlgaZX vlm 7 YdaYaZcaZZZiaZXY vmm 4 efaZaaWZaZZZZaeX "
    "vocab 6 ZYaZZZYaaqZZZaZX vram 20 fdZXZZVYafUdXYZh warmup 4 cYaZaZbXZZZZiacY warn 7 ZaaZaZZZZZcecaYc "
    "was 12 fXacaZeZdYVZZdaX we 5 YZaYiZZZdZYZZdYb weight 14 abaYZZfZZbYXeZWe well 3 ZYaZZaXaiZZXZZYj "
    "what 5 dYaZaaaZZcgZZZdU when 65 YcZdbaWgbcWYaZaX where 4 ZZaZaaaZhfZZZZXY which 49 dfeYdZUYYbYbeaXX "
    "while 17 bWaYZZcicaddZZXV why 7 ccaYaZWZZYfdZZWg will 19 aXcaZcXYXbXcacbf with 92 ZacbXYWdaaeYZceW "
    "wonder 3 iZaZaZaZfZYZZZYY work 7 ZaaZaecZZZZZeebU worker 41 WXZXZYiebZadceVX works 5 ZgaZaaYZgZZZZZZZ "
    "workspace 8 YXalaZbZZdYZgaXU wrong 3 ZZaZaaXZZZeaaajX xa 4 mYaZaZcaZZaaaaYW xh 3 ZhahaZXaZZaZZaZY "
    "xla 7 cYaZaZXZeZeZZZYf xlaruntimeerror 3 ZZaaaaYagaZaaaZd yaml 4 aaaaaaZaacbaaaZb you 17 dYaXZZYbYcXYffVe "
    "your 3 ZZaaaaZaZZZaaadd zero 26 jVaYZeVYYahYXZaf zeros 4 ZYaaZZZaaffZZaZZ 一个 3 ZXaaaaWaaZdagaZc "
    "一张 3 YdaZaaYZaZZZlaZX 不足 3 ZYaZaZdaaZZYgaZc 两张 3 ZeaaaaZaaZaaZadZ 什么 5 YdaZaZYdZdZZYaeY "
    "会出 4 ZbaZaaeaaZYafaYY 但是 3 lXaZaZYZaZfYYaYX 使用 9 XhaZaZWZZYaecZVf 全量 3 ZZaaaaYaaajaZaZZ "
    "内存 8 YXaZaajZZZXZeaZa 出现 10 XgacaZbZZYeZcZaW 占用 4 dYaZaaaZaZXaZaiY 参数 3 YXaZaZYaZgdaZafY "
    "可以 4 gZaZaZaaaZZYZafX 图片 3 ZkaZaaZaaZaaZaZY 在一 3 ZXaaaaWaZZeagaZd 多卡 3 YYaaaZYaaeYaZaee "
    "如下 5 ZYaZaadaaZYZfaeY 存不 4 ZYaZaZaaaZdZfaZc 存占 4 dYaZaaaZaZXaZaiY 存溢 3 hcaaaaZaaZZYZaYb "
    "导致 3 YeaZaZYaagcaZaYY 尝试 3 ZiaaaaaaaZZaZaYZ 应该 3 eZaZaaaZaZfaZaZZ 微调 6 XZaZaZYaadnZZaXY "
    "我在 6 ZaaZaaVaZZdaeadb 报错 8 eYaYaZYZZZcYdadb 推理 7 XlaZaZVZZYXZdZfZ 数据 4 ZZaaaagaaZaaaaZa "
    "时候 3 YZaZaaZaaZeaZafZ 显卡 5 dbaZaZYZZZYZjaYa 显存 12 gaaYaZUbZdcXcZbY 显示 3 YeaaaaYaaZXaZaiY "
    "服务 3 dYaZaaXZZZfaYaYd 模型 12 afacaZVZZdcXcZaa 正常 3 eZaaaaaZaZYaZafZ 溢出 3 hcaaaaZaaZZYZaYb "
    "然后 3 aYaaaabaaaZagaZZ 用的 3 edaZaaYdaZZaYaYZ 的时 3 YZaZaaZaaZeaZafZ 的是 3 aZaaaaadaabaZaZa "
    "的错 3 ZfaaaabaaaZaZaZZ 脚本 4 ZYaZaadaaZcaaaeY 训练 13 XWacaZfZZdcZZaaa 请问 5 YZaZaZZZZjYZZadY "
    "过程 3 ZfaaaadaaZZaZaZZ 运行 5 geaZaZXaZZZYZada 这个 6 ZbaZaaedZfYZZaYX 进行 4 ZcaZaafaaZcaZaYY "
    "部署 4 ZbaYaaXZZZYZeaYi 错误 3 YdaaaaZaaZZaZagZ 问题 7 daaZaZZZZZcaYagX ";

}  // namespace vlmest::diagnose::report_words_table
